"""Shards as other programs read them; `shard_formats.formats` names each, and nothing else imports them."""
