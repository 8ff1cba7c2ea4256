"""Calibration: the keys of a simulated device, fitted to what a real one did."""
