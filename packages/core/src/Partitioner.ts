/**
 * Kafka's default partitioner: murmur2 of the key, so that a key lands on the same partition whichever client wrote it.
 */
import { murmur2 } from "./internal/port/murmur2.ts"

/** The partition of a key among `partitions` (1 or more). */
export const partitionFor = (key: Uint8Array, partitions: number): number => (murmur2(key) & 0x7fffffff) % partitions
