"""Which memory suits a stream and a budget, by trials on a sample of the stream."""
