/** The operations on dead letters, straight on the cluster, as the audit log tells of them: by the names of the routes of the admin API. */
import * as AnswersOf from "@eventbus/admin/AnswersOf"
import { type AuditView, DeadLetterSelection } from "@eventbus/core"
import type { Audited } from "../audited.ts"
import type { Operator } from "./operator.ts"

/** Work on a run needs one of them: that for the action of its plan. */
const worker = ["replay", "discard"]

/** The subject of the operations: `binding` is the key of the binding, `topic` one of its topics. */
interface Subject {
  readonly binding: string
  readonly topic?: string
}

export const make = (operator: Operator, audited: Audited, { binding, topic }: Subject): Operator =>
  topic === undefined ? ofBinding(operator, audited, binding) : ofBinding(operator, withTopic(audited, topic), binding)

/** Each entry names the topic, as the parameter of a request does. */
const withTopic = ({ change, view }: Audited, topic: string): Audited => {
  const named = <C extends { readonly target?: AuditView.Target }>(command: C): C => ({
    ...command,
    target: { topic, ...command.target }
  })
  return {
    change: (command, run, runOf) => change(named(command), run, runOf),
    view: (command, run) => view(named(command), run)
  }
}

const ofBinding = (operator: Operator, { change, view }: Audited, binding: string): Operator => ({
  groups: (states) => view({ action: "groups", binding }, operator.groups(states)),
  page: (query) => view({ action: "records", binding }, operator.page(query)),
  letter: (position) =>
    view(
      { action: "record", binding, target: { position: DeadLetterSelection.formatPosition(position) } },
      operator.letter(position)
    ),
  rehearse: (selection, options) =>
    change(
      {
        action: "rehearse",
        binding,
        permissions: ["replay"],
        target: { ...AnswersOf.targetOf(selection), ...options }
      },
      operator.rehearse(selection, options)
    ),
  transformed: (positions, transform) => {
    const position = positions.map(DeadLetterSelection.formatPosition)
    const command = { action: "transformed", binding, target: { position, transform } }
    return view(command, operator.transformed(positions, transform))
  },
  purge: (beforeMillis) =>
    change(
      { action: "purge", binding, permissions: ["discard"], target: { before: new Date(beforeMillis).toISOString() } },
      operator.purge(beforeMillis)
    ),
  plan: (request) => {
    const { select, reason, canaryWait: _, ...settings } = request
    const isReplay = request.action === "replay" || request.action === "toTier"
    const command = {
      ...{ action: "makePlan", binding, reason, target: { ...settings, ...AnswersOf.targetOf(select) } },
      permissions: [isReplay ? "replay" : "discard", ...(request.transform === undefined ? [] : ["transform"])]
    }
    return change(command, operator.plan(request), ({ id }) => id)
  },
  getPlan: (id) => view({ action: "plan", binding, run: id }, operator.getPlan(id)),
  work: (verb, id, begun) =>
    change(
      { action: verb === "apply" ? "applyPlan" : "resumeRun", binding, permissions: worker, run: id },
      operator.work(verb, id, begun)
    ),
  runs: view({ action: "runs", binding }, operator.runs),
  receipt: (id) => view({ action: "receipt", binding, run: id }, operator.receipt(id)),
  halt: (verb, id, reason) =>
    change(
      { action: verb === "pause" ? "pauseRun" : "cancelRun", binding, permissions: ["operate"], run: id, reason },
      operator.halt(verb, id, reason)
    ),
  setRate: (id, rate) =>
    change(
      { action: "setRunRate", binding, permissions: worker, run: id, target: { rate } },
      operator.setRate(id, rate)
    )
})
