"""The conformance kit: a slow exact oracle, golden vectors made by it, and what other tools answer."""
