"""The index buffer: codes kept end to end in bits, and the rules for what stays."""
