"""Code points and tokens: what Unicode and a pre-tokenizer say of text."""
