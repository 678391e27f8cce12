"""Run experiments on a cluster (`weir run --on ray`), and keep results in a store such as S3."""
