/** Answers in the fleet topic: `ack/{command}/{process}` → JSON `{state, host, bindings, error}`. The newest one counts. */
import * as Schema from "effect/Schema"
import type { ProducerRecord } from "../../ConsumerRecord.ts"
import { AckState } from "../../FleetView.ts"
import * as Format from "../base/entryFormat.ts"

const AckEntry = Schema.Struct({
  state: AckState,
  host: Schema.String,
  bindings: Schema.Int,
  error: Schema.optionalKey(Schema.String)
})
export type AckEntry = typeof AckEntry.Type

const decode = Format.decoder(AckEntry)

const form = /^ack\/([^/]{1,128})\/([^/]{1,128})$/

export const record = (topic: string, command: string, process: string, entry: AckEntry): ProducerRecord => ({
  ...{ topic, partition: 0, key: Format.bytesOf(`ack/${command}/${process}`) },
  value: Format.encode(entry)
})

/** Applies a record to the answers by command and process. An answer in a newer format changes nothing: its process counts as silent. */
export const apply = (acks: Map<string, Map<string, AckEntry>>, key: string, value: Uint8Array | null): void => {
  const [, command, process] = form.exec(key) ?? []
  if (command === undefined || value === null) return
  const decoded = decode(value)
  if (decoded._tag !== "Entry") return
  const ofCommand = acks.get(command) ?? new Map<string, AckEntry>()
  acks.set(command, ofCommand)
  ofCommand.set(process!, decoded.entry)
}
