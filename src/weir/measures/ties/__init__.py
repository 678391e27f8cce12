"""Mean, worst and best value of a measure over all orders of tied documents."""
