"""The Spark that pipelines run on: its Java, its libraries, its settings, its session."""
