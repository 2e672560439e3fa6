"""What a user asks for, whole. Nothing here prints."""
