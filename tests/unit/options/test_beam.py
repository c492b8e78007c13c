"""Values of keys, tokens and passwords are shown nowhere; all others are."""

import pytest

from pipelines.options.beam import refuse_secrets, text_without_secrets, without_secrets
from tokcore.errors import InputError

NAMES = [
    '--s3_access_key_id', '--s3_secret_access_key', '--s3_session_token',
    '--azure_connection_string', '--x_password', '--dbPassword', '--passphrase',
    '--job-server-credentials', '--apikey', '--API_TOKENS', '--authorization',
]  # fmt: skip


@pytest.mark.parametrize('name', NAMES)
def test_a_value_is_hidden_by_its_options_name(name):
    assert without_secrets([f'{name}=HUSH', '--x=1']) == (f'{name}=***', '--x=1')
    assert without_secrets([name, 'HUSH', '--x', '1']) == (name, '***', '--x', '1')


@pytest.mark.parametrize(
    'flags',
    [
        ['--runner=FlinkRunner', '--flink_master=[local]', '--parallelism', '2'],
        ['--max_num_keys=5', '--most_tokens', '7'],
        ['--tokenizer=x', '--monkey=1', '--passthrough', '--keyboard=us'],
        ['--labels', 'a=b', 'c=d'],
        ['--temp_location=gs://bucket/a:b@c/d', '--experiments=use_x,y=z'],
        ['--environment_config={"command": "/boot",  "env": {"A": "b"}}'],
        ['--password=', '--s3_verify'],
        [],
    ],
)
def test_what_is_not_a_secret_stays_as_it_was(flags):
    assert without_secrets(flags) == tuple(flags)


@pytest.mark.parametrize(
    ('flags', 'said'),
    [
        (['--x=1', '--s3_secret_access_key=HUSH'], '--s3_secret_access_key .* AWS_SECRET_ACCESS_KEY'),
        (['--s3_access_key_id', 'HUSH', '--x=1'], '--s3_access_key_id .* set AWS_ACCESS_KEY_ID'),
        (['--s3_session_token', 'HUSH'], '--s3_session_token .* set AWS_SESSION_TOKEN'),
        (['--azure_connection_string=HUSH'], '--azure_connection_string .* set it in the env'),
        (['--environment_config={"env": {"TOKEN": "HUSH"}}'], '--environment_config has a secret'),
        (['--s3_endpoint_url=http://me:HUSH@h'], '--s3_endpoint_url has a secret'),
        (['--x_password', 'HUSH'], '--x_password has a secret'),
    ],
)  # fmt: skip
def test_a_job_elsewhere_takes_no_secret(flags, said):
    with pytest.raises(InputError, match=f'{said}.*of the workers$') as refused:
        refuse_secrets(flags, 'FlinkRunner')
    assert 'HUSH' not in str(refused.value) and '--runner FlinkRunner' in str(refused.value)


def test_a_job_elsewhere_takes_all_other_options():
    refuse_secrets(
        ['--flink_master=h:8081', '--dataflow_kms_key=projects/p/k', '--no_auth=True', '--x', 'y'],
        'R',
    )


@pytest.mark.parametrize(
    ('value', 'shown'),
    [
        ('a=b,token=HUSH==,c', 'a=b,token=***,c'),
        ('env=TOKEN=HUSH', 'env=TOKEN=***'),
        ('process_command=/boot --password HUSH -v', 'process_command=/boot --password *** -v'),
        ('AccountName=a;AccountKey=HUSH==;End=z', 'AccountName=a;AccountKey=***;End=z'),
        ('http://me:HUSH@host:8081/x', 'http://***@host:8081/x'),
        ('https://host/p?x=1&sig=HUSH%3D&y=2', 'https://host/p?x=1&sig=***&y=2'),
        ('https://HUSH@host/p;token=HUSH/q?jwt=HUSH', 'https://***@host/p;token=***'),
        ('see http://h/a%3Bsig%3DHUSH, b', 'see http://h/***, b'),
        ('{"env": {"TOKEN": "HUSH"}, "a": 1}', '{"env": {"TOKEN": ***}, "a": 1}'),
        ('{"secrets": ["HUSH", 1]}', '{"secrets": ***'),
        ('[{"a": "key=HUSH"}]', '[{"a": "key=***"}]'),
        ('variables={"DB_PASSWORD": "HU SH"}', 'variables={"DB_PASSWORD": ***}'),
        ('credentials={"id": "HUSH", "x": "HUSH"}', 'credentials=***'),
    ],
)
def test_within_a_value_names_are_known_too(value, shown):
    assert without_secrets([f'--x={value}']) == (f'--x={shown}',)
    assert without_secrets(['--x', value]) == ('--x', shown)


@pytest.mark.parametrize(
    'value',
    ['{"a": "{\\"token\\": \\"HUSH\\"}"}', 'Authorization: Bearer HUSH.x', "{'token': 'HUSH'}"],
)
def test_nested_and_in_headers_they_are_hidden(value):
    [shown] = without_secrets([f'--x={value}'])
    assert 'HUSH' not in shown


def test_a_text_shows_no_value_that_an_option_hides():
    flags = ['--s3_session_token', 'HUSH', '--db_password=quiet']
    text = "cannot connect with 'HUSH' and quiet, token=other"
    assert text_without_secrets(text, flags) == "cannot connect with '***' and ***, token=***"
    assert text_without_secrets('all is well: nothing here', flags) == 'all is well: nothing here'


@pytest.mark.parametrize(
    'text',
    [
        'a' * 200_000,
        'a=' * 100_000,
        '{"' * 100_000,
        'key:' * 50_000,
        '://' * 70_000,
        'http://a;' * 20_000,
        'http://' + '%25' * 60_000,
    ],
)
def test_long_values_take_no_time_to_speak_of(text):
    without_secrets([f'--x={text}'])
