/**
 * The event as it is written, stored and delivered. It is immutable. The payload is encoded once and stays byte for byte the same
 * in the database, on the hot path and on the cold path.
 */
export {
  type EventEnvelope,
  type Input,
  make,
  maxPayloadBytes,
  ofJson,
  payloadJson
} from "./internal/base/envelope.ts"
