"""The Bias Benchmark for QA: whom a model names where the text does not say."""
