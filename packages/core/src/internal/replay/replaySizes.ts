/**
 * Tells without a transaction that a dead letter is too large for its topic. Asking the topic for its limit and compressing the value costs far less than a copy that the broker
 * refuses.
 */
import * as Effect from "effect/Effect"
import { RecordTooLarge } from "../../BrokerError.ts"
import type { DeadLetterRecord } from "../../DeadLetterRecord.ts"
import { keyOf, type Run } from "./replayRun.ts"
import * as Targets from "./replayTargets.ts"

/** A copy is at least so large, compared with its value in gzip: no other implementation makes it smaller by a tenth. */
const certain = 0.9

/** Notes the records among these that are certainly too large. */
export const noteTooLarge = Effect.fnUntraced(function* (run: Run, letters: ReadonlyArray<DeadLetterRecord>) {
  for (const letter of letters) {
    const topic = Targets.targetOf(run.options, run.selection, letter)?.topic
    const { record, value } = letter
    // A copy keeps this codec, which may do better than gzip.
    if (topic === undefined || value === null || record.compression === "zstd") continue
    const maxBytes = yield* limitOf(run, topic)
    if (maxBytes === undefined || value.length * certain <= maxBytes) continue
    const bytes = yield* gzipped(value)
    if (bytes === undefined || bytes * certain <= maxBytes) continue
    run.state.refused.set(keyOf(record), new RecordTooLarge({ topic, bytes, maxBytes }).message)
  }
})

/** The `max.message.bytes` of a topic; undefined where the cluster does not say, for example for want of a right. Asked once in a run. */
const limitOf = Effect.fnUntraced(function* ({ admin, state }: Run, topic: string) {
  const { limits } = state.known
  if (!limits.has(topic)) {
    const config = yield* Effect.option(Effect.timeout(admin.topicConfig(topic), "1 second"))
    const bytes = config._tag === "Some" ? Number(config.value.get("max.message.bytes")) : Number.NaN
    limits.set(topic, Number.isNaN(bytes) ? undefined : bytes)
  }
  return limits.get(topic)
})

/** The size of the bytes in gzip, to which a copy that is too large is compressed; undefined where the platform has no gzip. */
const gzipped = (bytes: Uint8Array) =>
  Effect.promise(async () => {
    if (globalThis.CompressionStream === undefined) return undefined
    const stream = new Blob([bytes.slice()]).stream().pipeThrough(new CompressionStream("gzip"))
    return (await new Response(stream).arrayBuffer()).byteLength
  })
