/**
 * The parts that handlers of routes share: the body of a request, and the failures of the cluster as one kind of answer.
 */
import {
  type BrokerError,
  DeadLetterSelection,
  type EventBusError,
  type FleetView,
  type ParkedKeys,
  type Replay,
  type ReplayPlan,
  type ReplayRun
} from "@eventbus/core"
import * as ByteSize from "effect/ByteSize"
import * as Effect from "effect/Effect"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import {
  type AuditOff,
  ClusterFailed,
  type DeadLetterNotFound,
  type FleetNotConfigured,
  InvalidRequest,
  type ParameterIssue,
  UnreadableBody
} from "../../AdminError.ts"
import { allowed } from "./parameters.ts"
import { kindOf, longestQuote } from "./selectionBody.ts"

const maxBytes = 1024 * 1024

/** The body of a request as text. */
export const jsonText = (request: HttpServerRequest.HttpServerRequest): Effect.Effect<string, UnreadableBody> => {
  const type = request.headers["content-type"] ?? "application/json"
  if (!/^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(type))
    return Effect.fail(new UnreadableBody({ reason: "its content type is not application/json" }))
  const encoding = request.headers["content-encoding"] ?? "identity"
  if (encoding.toLowerCase() !== "identity")
    return Effect.fail(new UnreadableBody({ reason: `it is encoded as ${JSON.stringify(encoding)}; send it as it is` }))
  return textOf(request)
}

/** The body of a request as text, whatever it is. The request keeps it: it can be read again. */
export const textOf = (request: HttpServerRequest.HttpServerRequest): Effect.Effect<string, UnreadableBody> =>
  request.text.pipe(
    Effect.provideService(HttpServerRequest.MaxBodySize, ByteSize.fromInputUnsafe(maxBytes)),
    Effect.mapError(() => new UnreadableBody({ reason: "it cannot be read, or is larger than 1 MiB" }))
  )

/** The position that a path names. `what`: of which kind of record. */
export const positionOf = (
  text: string,
  what: "position" | "heldPosition" | "parkedPosition"
): Effect.Effect<DeadLetterSelection.Position, InvalidRequest> => {
  const position = DeadLetterSelection.parsePosition(text)
  return position === undefined
    ? Effect.fail(
        new InvalidRequest({
          issues: [
            { path: "position", found: text.length > longestQuote ? kindOf(text) : text, allowed: allowed[what] }
          ]
        })
      )
    : Effect.succeed(position)
}

/** Most levels of lists and objects in a body, as in a configuration file. */
const maxDepth = 64

const isDeeper = (value: unknown, levels: number): boolean =>
  Predicate.isObjectOrArray(value) && (levels === 0 || Object.values(value).some((each) => isDeeper(each, levels - 1)))

/** The value of a text that is JSON. As a whole the text may hold a secret, so no issue quotes it. */
export const parsed = (text: string): Result.Result<unknown, ReadonlyArray<ParameterIssue>> => {
  try {
    const value: unknown = JSON.parse(text)
    if (!isDeeper(value, maxDepth)) return Result.succeed(value)
    const found = `nesting exceeded maxDepth (${maxDepth})`
    return Result.fail([{ path: "", found, allowed: `JSON of at most ${maxDepth} levels` }])
  } catch {
    return Result.fail([{ path: "", found: "something that is not JSON", allowed: "JSON (RFC 8259)" }])
  }
}

/** Reads the body of a request. `absent`: the text that stands for a body where there is none. */
export const bodyOf = Effect.fnUntraced(function* <A>(
  request: HttpServerRequest.HttpServerRequest,
  read: (body: unknown) => Result.Result<A, ReadonlyArray<ParameterIssue>>,
  absent?: string
) {
  const text = (yield* jsonText(request)) || absent
  const body = text === undefined ? read(undefined) : Result.flatMap(parsed(text), read)
  return Result.isSuccess(body) ? body.success : yield* new InvalidRequest({ issues: body.failure })
})

/** The failures of commands on dead letters that are not the cluster's. */
type Own =
  | EventBusError.BindingNotFound
  | EventBusError.AmbiguousBinding
  | Replay.InvalidArgument
  | Replay.UnknownTier
  | Replay.NotPurgeable
  | Replay.ReplayRunning
  | Replay.ReplayTakenOver
  | Replay.ForeignDeadLetters
  | ReplayPlan.PlanRefused
  | ReplayRun.UnknownRun
  | ReplayRun.RunOver
  | ReplayRun.RunAtWork
  | DeadLetterNotFound
  | ParkedKeys.KeyNotHeld
  | ParkedKeys.StrandedKeysChanged
  | ParkedKeys.NotOrderedPerKey
  | AuditOff
  | FleetNotConfigured
  | FleetView.UnfitTopic

const ownTags: ReadonlySet<string> = new Set<Own["_tag"]>([
  "BindingNotFound",
  "AmbiguousBinding",
  "InvalidArgument",
  "UnknownTier",
  "NotPurgeable",
  "KeyNotHeld",
  "StrandedKeysChanged",
  "NotOrderedPerKey",
  "ReplayRunning",
  "ReplayTakenOver",
  "ForeignDeadLetters",
  "UnknownPlan",
  "PlanExpired",
  "PlanApplied",
  "PlanStale",
  "UnknownRun",
  "RunOver",
  "RunAtWork",
  "DeadLetterNotFound",
  "AuditOff",
  "FleetNotConfigured",
  "UnfitTopic"
])

/** All failures of the cluster are one kind of answer. */
export const onCluster = <A, E extends Own | BrokerError.BrokerError>(
  effect: Effect.Effect<A, E>
): Effect.Effect<A, Extract<E, Own> | ClusterFailed> =>
  Effect.mapError(effect, (error) =>
    isOwn(error) ? error : new ClusterFailed({ error: error._tag, detail: error.message })
  )

const isOwn = <E extends Own | BrokerError.BrokerError>(error: E): error is Extract<E, Own> => ownTags.has(error._tag)
