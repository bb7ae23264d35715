"""What is in the file of a memory, for those who look at it from outside: facts, damage and pictures."""
