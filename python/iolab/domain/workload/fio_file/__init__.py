"""fio job files: their dialect, their options, and what they come to on iolab's engine or on fio itself."""
