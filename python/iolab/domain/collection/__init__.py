"""Many runs together: what is known of each, which repeat the same, on which hardware, and which are asked for."""
