/**
 * Plans over dead events in files: 'plan' writes one, 'apply' and 'receipt' read it.
 */
import type { DeadEvents } from "@eventbus/outbox"
import { Effect, FileSystem, Schema } from "effect"
import { type CommandFailed, refuse, unavailable } from "../failures.ts"
import { jsonText } from "../text.ts"
import { outboxPackage } from "./outboxModule.ts"

/** Writes a plan into a file that is not there yet: another plan may wait in it. */
export const write = Effect.fnUntraced(function* (path: string, plan: DeadEvents.Plan) {
  const files = yield* FileSystem.FileSystem
  yield* unavailable(files.writeFileString(path, `${jsonText(plan)}\n`, { flag: "wx", mode: 0o600 }))
})

export const read = Effect.fnUntraced(function* (
  path: string
): Effect.fn.Return<DeadEvents.Plan, CommandFailed, FileSystem.FileSystem> {
  const files = yield* FileSystem.FileSystem
  const { DeadEvents } = yield* outboxPackage
  const text = yield* unavailable(files.readFileString(path))
  return yield* Effect.catch(Schema.decodeEffect(Schema.fromJsonString(DeadEvents.Plan))(text), () =>
    refuse(`${path} has no plan: allowed is a file that 'outbox dead plan --out' has written`)
  )
})
