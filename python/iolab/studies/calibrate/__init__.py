"""Calibrates simulated devices: what was measured, the fit, and the file of the device with its errors."""
