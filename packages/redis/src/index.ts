export * as RedisIdempotencyStore from "./RedisIdempotencyStore.ts"
