"""Item response models on arrays: models, estimation, person fit, and formats with and without a modality."""
