from skillopt_testkit import RedactorConformance


class TestConformance(RedactorConformance):
    name = "patterns"
    secrets = (
        ("Authorization: Bearer abc123def456ghi789", "abc123def456ghi789"),
        ("https://user:hunter22@host.example/v1", "user:hunter22"),
        ("key " + "ghp" + "_0aA1bB2cC3dD4eE5fF6gG7hH8iI9jJ0kK1lL", "_0aA1bB2cC3dD4eE5fF6gG7hH8iI9jJ0kK1lL"),
    )
