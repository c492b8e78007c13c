"""TMX: translation units of XML, read as a stream, and the lines of it that Tensor2Tensor looks at."""
