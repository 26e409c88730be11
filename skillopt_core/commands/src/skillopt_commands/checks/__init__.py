"""What `skillopt doctor` looks at: what is installed, and whether a training by a configuration could begin."""
