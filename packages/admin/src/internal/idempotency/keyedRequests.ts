/**
 * Does the work of a POST with an idempotency key once. Its repeats get the first answer: from this process while it works, and from the journal of the binding for 24 hours,
 * whichever process gets them.
 *
 * Where no journal can be written, work that sets a state, of this process or of the fleet, is done all the same, and this process keeps its answer. Other work is refused.
 */
import { createHash } from "node:crypto"
import { LogFormat, LogLine, type RequestJournal } from "@eventbus/core"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import {
  IdempotencyKeyReused,
  IdempotencyUnavailable,
  IdempotentRequestUnfinished,
  InvalidRequest
} from "../../AdminError.ts"
import { EventBusAdmin } from "../../EventBusAdmin.ts"
import { isoOf } from "../answersOf.ts"
import { Caller } from "../middlewares.ts"
import * as OwnFiber from "../ownFiber.ts"
import { textOf } from "../requests/requests.ts"
import * as Idempotency from "./idempotencyKey.ts"
import * as Outcome from "./outcome.ts"
import * as OwnAnswers from "./ownAnswers.ts"

type Response = HttpServerResponse.HttpServerResponse

/** A request with a key. */
interface Keyed extends RequestJournal.Request {
  /** Its operation, for the log. */
  readonly operation: string
  /** The key of the binding that it is about, where this process has it. */
  readonly binding: string | undefined
}

/** The operations whose effect ends with this process, or that hold and release a binding in the whole fleet: a second time they lead to the same state. */
const ofState: ReadonlySet<string> = new Set(["register", "start", "stop", "pause", "resume", "rehearse"])

/** Longest time that such an operation waits for the journal: an operator may pause a binding because its cluster does not answer. */
const longestClaim = "3 seconds"

export const layer: Layer.Layer<Idempotency.IdempotencyKey, never, EventBusAdmin> = Layer.effect(
  Idempotency.IdempotencyKey,
  Effect.gen(function* () {
    const admin = yield* EventBusAdmin
    const scope = yield* Effect.scope
    const own = yield* OwnAnswers.make
    return Idempotency.IdempotencyKey.of((respond, { endpoint: { identifier } }) =>
      Effect.gen(function* () {
        const { headers } = yield* HttpServerRequest.HttpServerRequest
        const key = headers[Idempotency.header.toLowerCase()]
        if (key === undefined) return yield* respond
        const request = yield* keyedOf(admin, identifier, key)
        return yield* once({ admin, scope, own }, request, respond)
      })
    )
  })
)

interface Options {
  readonly admin: EventBusAdmin["Service"]
  /** Work goes on in it when its caller is gone. */
  readonly scope: Scope.Scope
  readonly own: OwnAnswers.OwnAnswers
}

const hashOf = (parts: ReadonlyArray<string | null>): string =>
  createHash("sha256").update(JSON.stringify(parts)).digest("hex")

/** Every spelling of a binding's name is one request, and keys of several callers never meet. */
const keyedOf = Effect.fnUntraced(function* (admin: EventBusAdmin["Service"], operation: string, key: string) {
  if (!Idempotency.isKey(key)) {
    const found = key === "" ? "an empty text" : `a text of ${key.length} characters`
    return yield* new InvalidRequest({ issues: [{ path: Idempotency.header, found, allowed: Idempotency.allowed }] })
  }
  const request = yield* HttpServerRequest.HttpServerRequest
  const { name: caller } = yield* Caller
  const { name, id, position, eventId } = yield* HttpRouter.params
  const binding =
    name === undefined ? undefined : yield* Effect.catch(admin.keyOf(name), () => Effect.succeed(undefined))
  const { search } = new URL(request.originalUrl, "http://localhost")
  const of = [position, eventId].filter((each) => each !== undefined)
  const content = [operation, binding ?? name ?? null, id ?? null, search, yield* textOf(request), ...of]
  const keyed: Keyed = { id: hashOf([caller, key]), fingerprint: hashOf(content), operation, binding }
  return keyed
})

/** Finds the request, or begins its work, in one step: no other request comes between. */
const once = <E>(options: Options, request: Keyed, respond: Effect.Effect<Response, E>): Answered<E> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const { own, scope } = options
      const known = own.find(request.id)
      if (known !== undefined && known.fingerprint !== request.fingerprint) return yield* new IdempotencyKeyReused()
      if (known?.answer !== undefined) return again(known.answer)
      if (known?.isRunning === true) {
        const answer = yield* restore(Deferred.await(known.ended))
        return answer === undefined ? yield* restore(once(options, request, respond)) : again(answer)
      }
      const begun = own.begin(request.id, request.fingerprint)
      const fiber = yield* Effect.forkIn(work(options, request, begun, respond), scope)
      return yield* Effect.onInterrupt(restore(Fiber.join(fiber)), () => Effect.forkIn(tell(request, fiber), scope))
    })
  )

type Answered<E> = Effect.Effect<
  Response,
  E | IdempotencyKeyReused | IdempotentRequestUnfinished | IdempotencyUnavailable
>

/** The line of the guard says only that the caller left. */
const tell = ({ operation }: Keyed, fiber: Fiber.Fiber<Response, unknown>) =>
  Effect.flatMap(Fiber.await(fiber), (exit) => {
    const end = Exit.isSuccess(exit) ? `was answered with status ${exit.value.status}` : "failed"
    return LogLine.info(LogFormat.oneLine(`Admin API: ${operation}, whose caller had left, ${end}`))
  })

/** Claims the work, does it, and keeps its answer. */
const work = <E>(
  { admin, own }: Options,
  request: Keyed,
  begun: OwnAnswers.Known,
  respond: Effect.Effect<Response, E>
): Answered<E> => {
  let answer: Outcome.Answer | undefined
  let kept: "cluster" | "process" = "process"
  return Effect.gen(function* () {
    const claim = yield* claimOf(admin, request)
    if (claim?._tag === "Taken") {
      answer = yield* answerOf(claim, request)
      kept = "cluster"
      return again(answer)
    }
    const exit = yield* Effect.exit(respond)
    const outcome = yield* Outcome.of(exit)
    if (outcome._tag === "Nothing" && claim !== undefined) yield* orWarn(request, claim.release)
    if (outcome._tag === "Done") {
      answer = outcome.answer
      if (claim !== undefined && (yield* orWarn(request, claim.keep(answer)))) kept = "cluster"
    }
    return HttpServerResponse.setHeader(yield* exit, Idempotency.keptHeader, kept)
  }).pipe(
    Effect.scoped,
    Effect.ensuring(
      Effect.suspend(() => {
        if (answer === undefined) own.forget(request.id)
        else own.end(request.id, begun, kept === "process" ? answer : undefined)
        return Deferred.succeed(begun.ended, answer)
      })
    )
  )
}

/** Claims the work in the journal of the binding. Undefined where this process alone keeps the answer. */
const claimOf = Effect.fnUntraced(function* (
  admin: EventBusAdmin["Service"],
  { operation, binding, ...request }: Keyed
) {
  if (binding === undefined) return undefined
  // A binding that somebody removes at this moment: its operation will say so.
  const journal = yield* Effect.catch(admin.requests(binding), () => Effect.succeed(undefined))
  if (journal === undefined) return undefined
  if (!ofState.has(operation)) {
    return yield* journal.claim(request).pipe(
      // Without a dead letter topic there is nothing that could be done twice.
      Effect.catchTag("UnknownTopic", () => Effect.undefined),
      Effect.mapError(({ message }) => new IdempotencyUnavailable({ binding, detail: message }))
    )
  }
  // A cluster that does not answer would also hold up the end of the claim.
  return yield* OwnFiber.run(journal.claim(request)).pipe(
    Effect.timeoutOrElse({ duration: longestClaim, orElse: () => Effect.undefined }),
    Effect.catch(() => Effect.undefined)
  )
})

const answerOf = Effect.fnUntraced(function* (
  { answer, fingerprint, host, pid, sinceMillis }: RequestJournal.Taken,
  request: Keyed
) {
  if (fingerprint !== request.fingerprint) return yield* new IdempotencyKeyReused()
  return answer ?? (yield* new IdempotentRequestUnfinished({ host, pid, since: isoOf(sinceMillis) }))
})

/** The work is over, and its caller gets the answer in any case. */
const orWarn = ({ operation, binding }: Keyed, entry: Effect.Effect<void, { readonly message: string }>) =>
  Effect.matchEffect(entry, {
    onSuccess: () => Effect.succeed(true),
    onFailure: ({ message }) =>
      Effect.as(
        LogLine.warning(
          `Admin API: the journal of binding '${binding}' did not keep how ${operation} ended, so other processes refuse its repeats: ${message}`
        ),
        false
      )
  })

const again = ({ status, body }: Outcome.Answer): Response =>
  HttpServerResponse.text(body, {
    ...{ status, contentType: "application/json" },
    headers: { [Idempotency.replayedHeader]: "true" }
  })
