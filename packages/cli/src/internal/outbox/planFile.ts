/**
 * Plans over dead events in files: 'plan' writes one, 'apply' and 'receipt' read it.
 */
import type { DeadEvents } from "@eventbus/outbox"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import type * as PlatformError from "effect/PlatformError"
import * as Schema from "effect/Schema"
import { CommandFailed, exitCodes, refuse } from "../failures.ts"
import { jsonText } from "../text.ts"
import { outboxPackage } from "./outboxModule.ts"

/** A name that leads to no such file is wrong usage; a file that cannot be reached otherwise is not. */
const toFailed =
  (where: string, allowed: string) =>
  ({ reason: { _tag, message } }: PlatformError.PlatformError): CommandFailed =>
    ["AlreadyExists", "NotFound", "BadResource"].includes(_tag)
      ? new CommandFailed({ message: `${where}; allowed is ${allowed}`, code: exitCodes.usage })
      : new CommandFailed({ message, code: exitCodes.unavailable })

/** Writes a plan into a file that is not there yet: another plan may wait in it. */
export const write = Effect.fnUntraced(function* (path: string, plan: DeadEvents.Plan) {
  const files = yield* FileSystem.FileSystem
  yield* Effect.mapError(
    files.writeFileString(path, `${jsonText(plan)}\n`, { flag: "wx", mode: 0o600 }),
    toFailed(`--out is ${path}`, "the name of a new file, in a folder that is there")
  )
})

export const read = Effect.fnUntraced(function* (
  path: string
): Effect.fn.Return<DeadEvents.Plan, CommandFailed, FileSystem.FileSystem> {
  const files = yield* FileSystem.FileSystem
  const { DeadEvents } = yield* outboxPackage
  const text = yield* Effect.mapError(
    files.readFileString(path),
    toFailed(`the plan is ${path}`, "a file that 'outbox dead plan --out' has written")
  )
  return yield* Effect.catch(Schema.decodeEffect(Schema.fromJsonString(DeadEvents.Plan))(text), () =>
    refuse(`${path} has no plan: allowed is a file that 'outbox dead plan --out' has written`)
  )
})
