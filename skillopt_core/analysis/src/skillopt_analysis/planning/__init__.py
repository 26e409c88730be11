"""What a training will ask, use and take, told from configuration, data and start skill alone."""
