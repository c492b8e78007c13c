"""tf.train.Example as protobuf itself parses it, without TensorFlow."""

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

_FIELD = descriptor_pb2.FieldDescriptorProto
_KINDS = {'bytes_list': 'BytesList', 'float_list': 'FloatList', 'int64_list': 'Int64List'}


def features_by_protobuf(record: bytes) -> dict[str, list] | None:
    """Returns the values of each feature, or None if protobuf refuses the message."""
    example = _EXAMPLE()
    try:
        example.ParseFromString(record)
    except DecodeError:
        return None
    features = {}
    for name, feature in example.features.feature.items():
        kind = feature.WhichOneof('kind')
        features[name] = [] if kind is None else list(getattr(feature, kind).value)
    return features


def _message_class():
    """Returns the class of the messages that TensorFlow's example.proto and feature.proto declare."""
    file = descriptor_pb2.FileDescriptorProto(name='example.proto', package='t', syntax='proto3')

    def message(name, *fields, into=file.message_type):
        declared = into.add(name=name)
        for number, (field, label, kind) in enumerate(fields, 1):
            of_message = kind if isinstance(kind, str) else None
            declared.field.add(
                name=field,
                number=number,
                label=label,
                type=_FIELD.TYPE_MESSAGE if of_message else kind,
                type_name=of_message,
            )
        return declared

    one, many = _FIELD.LABEL_OPTIONAL, _FIELD.LABEL_REPEATED
    message('BytesList', ('value', many, _FIELD.TYPE_BYTES))
    message('FloatList', ('value', many, _FIELD.TYPE_FLOAT))
    message('Int64List', ('value', many, _FIELD.TYPE_INT64))
    feature = message('Feature', *((field, one, f'.t.{kind}') for field, kind in _KINDS.items()))
    feature.oneof_decl.add(name='kind')
    for field in feature.field:
        field.oneof_index = 0
    features = message('Features', ('feature', many, '.t.Features.FeatureEntry'))
    entry = message(
        'FeatureEntry',
        ('key', one, _FIELD.TYPE_STRING),
        ('value', one, '.t.Feature'),
        into=features.nested_type,
    )
    entry.options.map_entry = True
    message('Example', ('features', one, '.t.Features'))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName('t.Example'))


_EXAMPLE = _message_class()
