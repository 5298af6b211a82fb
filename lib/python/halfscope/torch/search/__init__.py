"""Search for what must stay in FP32."""
