"""The inputs of the golden vectors, written by people; scripts/make_vectors.py adds the oracle's answers."""
