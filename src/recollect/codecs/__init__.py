"""How an experience becomes a code and a code becomes a recollection."""
