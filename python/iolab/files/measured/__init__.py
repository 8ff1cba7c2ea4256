"""Files in which somebody measured a device, read as the cells of a calibration."""
