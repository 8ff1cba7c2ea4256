"""A campaign of drawn configurations, each asked of a real kernel in a guest machine and of the model."""
