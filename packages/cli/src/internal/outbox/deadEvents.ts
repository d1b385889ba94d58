/**
 * The parts that the commands on dead events share: the operator over the module's store, and how its failures end a command.
 */
import type { AuditView } from "@eventbus/core"
import type { DeadEventOperator, OutboxError } from "@eventbus/outbox"
import * as Effect from "effect/Effect"
import type * as Path from "effect/Path"
import * as References from "effect/References"
import * as Audited from "../audited.ts"
import { CommandFailed, exitCodes } from "../failures.ts"
import * as Flags from "../flags.ts"
import * as OutboxModule from "./outboxModule.ts"

/** The flags of every command. */
export const shared = { outbox: OutboxModule.flag, json: Flags.json }

/** Their values. */
export interface Source {
  readonly outbox: string
  readonly json: boolean
}

type Operator = DeadEventOperator.DeadEventOperator["Service"]

type Failed = CommandFailed | DeadEventOperator.Failure | OutboxError.DeadEventPlanStale | AuditView.AuditUnavailable

/** The flags whose names differ from the paths of what they say. */
const flagOf: Readonly<Record<string, string>> = {
  "select.groups": "group",
  "select.eventType": "type",
  "select.aggregateType": "aggregate-type",
  "select.aggregateId": "aggregate-id",
  "select.eventIds": "id",
  "select.all": "all",
  eventType: "type",
  aggregateType: "aggregate-type",
  aggregateId: "aggregate-id",
  canaryWait: "canary-wait",
  stopAbove: "stop-above"
}

/** The first issue. Those of a plan's file and of the module are an answer, and those of flags wrong usage. */
const ofIssue = ({ issues }: OutboxError.InvalidOutboxConfig): CommandFailed => {
  const [{ path, found, allowed } = { path: "", found: "", allowed: "" }] = issues
  if (/^(?:plan|store)\b/.test(path)) {
    return new CommandFailed({ message: `${path} is ${found}; allowed is ${allowed}`, code: exitCodes.refused })
  }
  const name = path.replace(/\[\d+\]$/, "")
  const message =
    path === "select"
      ? "name the events by --group, --type, --aggregate-type, --aggregate-id, --id or --all"
      : `--${flagOf[name] ?? name} is ${found}; allowed is ${allowed}`
  return new CommandFailed({ message, code: exitCodes.usage })
}

/** A failure with its exit code. */
const toFailed = (error: Failed): CommandFailed => {
  switch (error._tag) {
    case "CommandFailed":
      return error
    case "InvalidOutboxConfig":
      return ofIssue(error)
    case "DeadEventPlanStale":
      return new CommandFailed({ message: error.message, code: exitCodes.refused })
    default:
      return new CommandFailed({ message: error.message, code: exitCodes.unavailable })
  }
}

/** Runs something with the operations on the dead events of the module's outbox. A module that provides an audit log has its entries. */
export const withOperator = <A, R>(
  { outbox }: Pick<Source, "outbox">,
  use: (operator: Operator, audited: Audited.Audited) => Effect.Effect<A, Failed, R>
): Effect.Effect<A, CommandFailed, R | Path.Path> =>
  OutboxModule.withStore(outbox, (provided) =>
    Effect.gen(function* () {
      const { DeadEventOperator } = yield* OutboxModule.outboxPackage
      return yield* use(yield* DeadEventOperator.make(), yield* Audited.make)
    }).pipe(Effect.provide(provided), Effect.mapError(toFailed), Effect.provideService(References.LogToStderr, true))
  )
