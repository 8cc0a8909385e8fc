/**
 * What `import … from 'pawl/engine'` gives: the embedded engine itself, for those who make a small model of their own and
 * play episodes on it. Apart from index.ts, because it loads ONNX Runtime.
 */
export { readCheckpoint, writeCheckpoint } from './engine/checkpoint.ts';
export type { Datum, Engine } from './engine/engine.ts';
export { type ModelConfig, modelConfigJson, parameterCount, parameterShapes } from './engine/onnx/config.ts';
export { createOnnxEngine } from './engine/onnx/engine.ts';
export { randomWeights } from './engine/onnx/weights.ts';
export { createTokenizer, type Tokenizer } from './engine/tokenizer.ts';
export { tokenizerConfig, trainTokenizer } from './engine/tokenizer-train.ts';
export { chatCodec, loadChatCodec } from './simulate/chat-codec.ts';
export { type ChatCodec, enginePlayer } from './simulate/engine-player.ts';
export { exampleFrom, measureSuccess } from './train/episodes.ts';
export { supervisedStep } from './train/sft.ts';
