/**
 * The operations on dead letters by the admin API of a running process.
 */
import { DeadLetterSelection, type ReplayPlan } from "@eventbus/core"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type { Asking } from "../runningProcess.ts"
import type { Failed, Operator } from "./operator.ts"

/** How often the command asks for the end of something that the process does. */
const pollInterval = "500 millis"

/** The operations on a binding of the process, or on one of its topics. */
export const make = (asking: Asking, name: string, topic?: string): Operator => {
  const { asked, client } = asking
  const ofTopic = topic === undefined ? {} : { topic }
  const ofRun = (id: string) => ({ params: { name, id } })
  const receipt: Operator["receipt"] = (id) => asked(client.runs.receipt(ofRun(id)))
  return {
    groups: (state) =>
      asked(client.letters.groups({ params: { name }, query: state === undefined ? ofTopic : { state, ...ofTopic } })),
    page: ({ fingerprint, states, searchesPayload: _, ...rest }) =>
      asked(
        client.letters.records({
          params: { name },
          query: {
            ...{ ...rest, ...ofTopic },
            ...(fingerprint === undefined ? {} : { group: fingerprint }),
            ...(states === undefined ? {} : { state: states })
          }
        })
      ),
    letter: (position) =>
      Effect.catchIf(
        asked(
          client.letters.record({
            params: { name, position: DeadLetterSelection.formatPosition(position) },
            query: ofTopic
          })
        ),
        ({ _tag }) => _tag === "DeadLetterNotFound",
        () => Effect.undefined
      ),
    rehearse: (selection, options) =>
      rehearsed(asking, { name, query: ofTopic }, { select: selectOf(selection), ...options }),
    transformed: (positions, transform) =>
      Effect.forEach(positions.map(DeadLetterSelection.formatPosition), (position) =>
        asked(client.letters.transformed({ params: { name, position }, query: { transform, ...ofTopic } }))
      ),
    purge: (beforeMillis) =>
      asked(
        client.deadLetters.purge({
          params: { name },
          query: { olderThan: new Date(beforeMillis).toISOString(), ...ofTopic }
        })
      ),
    plan: (request) => asked(client.runs.makePlan({ params: { name }, query: ofTopic, payload: bodyOf(request) })),
    getPlan: (id) => asked(client.runs.plan(ofRun(id))),
    work: Effect.fnUntraced(function* (verb, id, begun) {
      const run = { ...ofRun(id), payload: {} }
      let found = yield* verb === "apply" ? asked(client.runs.applyPlan(run)) : asked(client.runs.resumeRun(run))
      yield* Deferred.succeed(begun, undefined)
      while (found.state === "running" && found.abandonedSince === undefined) {
        yield* Effect.sleep(pollInterval)
        found = yield* receipt(id)
      }
      return found
    }),
    runs: asked(client.runs.runs({ params: { name } })),
    receipt,
    halt: (verb, id, reason) => {
      const run = { ...ofRun(id), payload: { reason } }
      return asked(verb === "pause" ? client.runs.pauseRun(run) : client.runs.cancelRun(run))
    },
    setRate: (id, rate) => asked(client.runs.setRunRate({ ...ofRun(id), payload: { rate } }))
  }
}

const rehearsed = Effect.fnUntraced(function* (
  { asked, client }: Asking,
  { name, query }: { readonly name: string; readonly query: { readonly topic?: string } },
  payload: object
) {
  let found = yield* asked(client.letters.rehearse({ params: { name }, query, payload }))
  while (found.status === "running") {
    yield* Effect.sleep(pollInterval)
    found = yield* asked(client.letters.rehearsal({ params: { name, id: found.id } }))
  }
  if (found.report !== undefined) return found.report
  const { error: _tag = "InternalError", message = `the rehearsal failed: ${_tag}; the log of the process says why` } =
    found
  return yield* Effect.fail<Failed>({ _tag, message })
})

/** A selection as a body has it. */
const selectOf = ({
  fingerprints,
  fromMillis,
  toMillis,
  records,
  except,
  ...rest
}: ReplayPlan.PlanRequest["select"]) => ({
  ...rest,
  ...(fingerprints === undefined ? {} : { groups: fingerprints }),
  ...(fromMillis === undefined ? {} : { from: fromMillis }),
  ...(toMillis === undefined ? {} : { to: toMillis }),
  ...(records === undefined ? {} : { records: records.map(DeadLetterSelection.formatPosition) }),
  ...(except === undefined ? {} : { except: except.map(DeadLetterSelection.formatPosition) })
})

/** A request as a body has it: the credential says who asks. */
const bodyOf = ({ select, by: _, ...request }: ReplayPlan.PlanRequest) => ({ ...request, select: selectOf(select) })
