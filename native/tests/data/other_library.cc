// A shared library that is not ONNX Runtime, for runtime_open_test.
extern "C" int As2dTestSymbol() { return 1; }
