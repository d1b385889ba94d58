/**
 * Reads the bodies of requests about plans and runs, and reports everything that is wrong with one with its path.
 */
import { Settings } from "@eventbus/config"
import { Ranges, ReplayPlan } from "@eventbus/core"
import * as Result from "effect/Result"
import type { ParameterIssue } from "../../AdminError.ts"
import * as SelectionBody from "../requests/selectionBody.ts"

type Read<A> = Result.Result<A, ReadonlyArray<ParameterIssue>>

/** A request as a body has it: the name of the caller comes from elsewhere. */
export type Request = Omit<ReplayPlan.PlanRequest, "by">

const number = ({ minimum, maximum, kind }: Ranges.Range) => ({
  type: kind === "decimal" ? "number" : "integer",
  ...{ minimum, maximum }
})

const text = { type: "string", minLength: 1 }

/** The body of a plan, for the OpenAPI document. */
export const jsonSchema = {
  type: "object",
  required: ["action", "select", "reason"],
  additionalProperties: false,
  properties: {
    action: { type: "string", enum: ["replay", "toTier", "discard", "restore"] },
    tier: { type: "integer", minimum: 1, description: "The retry tier, for toTier alone" },
    select: SelectionBody.selectSchema,
    transform: { ...text, description: "The name of a function of the binding that repairs the letters" },
    rate: number(Ranges.run.rate),
    canary: number(Ranges.run.canary),
    canaryWait: {
      ...{ type: ["integer", "string"], minimum: 0, maximum: Ranges.run.canaryWait.maximum },
      description: "Milliseconds, or a duration such as 60 seconds"
    },
    stopAbove: number(Ranges.run.stopAbove),
    ignoreMaxReplays: { type: "boolean" },
    reason: text
  }
}

/** The body of a pause and of a cancellation. */
export const reasonSchema = {
  ...{ type: "object", required: ["reason"], additionalProperties: false },
  properties: { reason: text }
}

/** The body that sets a rate. */
export const rateSchema = {
  ...{ type: "object", required: ["rate"], additionalProperties: false },
  properties: { rate: number(Ranges.run.rate) }
}

const planKeys = Object.keys(jsonSchema.properties)

/** Reads the body of a plan. */
export const readPlan = (body: unknown): Read<Request> => {
  if (!SelectionBody.isRecord(body)) return SelectionBody.notAnObject(body, "action, select and reason")
  const select = SelectionBody.readSelect(body["select"])
  const known = Object.fromEntries(Object.entries(body).filter(([name]) => planKeys.includes(name)))
  const wait = durationOf(known["canaryWait"])
  const request = {
    ...known,
    ...(wait === undefined ? {} : { canaryWait: wait }),
    // The issues of the selection have the names and the paths of the body.
    select: Result.isSuccess(select) ? select.success : { all: true }
  }
  const issues = [
    ...SelectionBody.unknownKeys(body, planKeys),
    ...ReplayPlan.issues(request),
    ...(Result.isFailure(select) ? select.failure : [])
  ]
  // It has no issues, so it is one.
  return issues.length === 0 ? Result.succeed(request as Request) : Result.fail(issues)
}

/** A duration in the forms of parameters. Any other value is none. */
export const durationOf = (given: unknown): unknown => {
  if (typeof given === "string") {
    const millis = Settings.parseDuration(given)
    return Number.isNaN(millis) ? given : millis
  }
  return typeof given === "object" ? null : given
}

/** Reads the reason of a command. */
export const readReason = (body: unknown): Read<string> => {
  if (!SelectionBody.isRecord(body)) return SelectionBody.notAnObject(body, "reason")
  const { reason } = body
  const isGood = typeof reason === "string" && reason.trim() !== ""
  const issues = [
    ...SelectionBody.unknownKeys(body, ["reason"]),
    ...(isGood ? [] : [{ path: "reason", found: SelectionBody.kindOf(reason), allowed: "a text that says why" }])
  ]
  return isGood && issues.length === 0 ? Result.succeed(reason) : Result.fail(issues)
}

/** Reads a rate. */
export const readRate = (body: unknown): Read<number> => {
  if (!SelectionBody.isRecord(body)) return SelectionBody.notAnObject(body, "rate")
  const issues = [
    ...SelectionBody.unknownKeys(body, ["rate"]),
    ...Ranges.problems("rate", body["rate"] ?? null, Ranges.run.rate)
  ]
  return issues.length === 0 ? Result.succeed(body["rate"] as number) : Result.fail(issues)
}

/** A resumption has no body, or an empty object. */
export const readNothing = (body: unknown): Read<void> => {
  if (!SelectionBody.isRecord(body)) return SelectionBody.notAnObject(body, "no key")
  const issues = SelectionBody.unknownKeys(body, [])
  return issues.length === 0 ? Result.succeed(undefined) : Result.fail(issues)
}
