"""What happens to a batch between read and load."""
