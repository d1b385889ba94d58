/**
 * Holds the history of a run against the rules of its kind.
 */
import { applyEntry } from "../history/applyEntry.ts"
import { FigureBook } from "../history/FigureBook.ts"
import type { Entry } from "../history/History.ts"
import { Incarnations } from "../history/Incarnations.ts"
import { Ledger } from "../history/Ledger.ts"
import { OrderBook } from "../history/OrderBook.ts"
import { viewOf } from "../history/orderViews.ts"
import { concerning, scenarioOf, servicesOf } from "../history/services.ts"
import { figureRules } from "../rules/figureRules.ts"
import { orderRules } from "../rules/orderRules.ts"
import { remakeRules } from "../rules/remakeRules.ts"
import { rules } from "../rules/rules.ts"
import { hasRemakes } from "../scenario/remakes.ts"
import { type BindingPlan, isPerKey, type Scenario } from "../scenario/Scenario.ts"

export interface Violation {
  readonly rule: string
  readonly message: string
  /** Index of the history entry that broke the rule. */
  readonly at: number
}

/** The first entry that breaks a rule. */
export const firstViolation = (scenario: Scenario, entries: ReadonlyArray<Entry>): Violation | undefined => {
  if (isPerKey(scenario)) {
    const broken = scenario.bindings.flatMap((plan) => violationOfOrder(scenario, plan, entries) ?? [])
    return broken.sort((a, b) => a.at - b.at)[0]
  }
  const found = hasRemakes(scenario)
    ? [violationOfRemakes(entries)]
    : servicesOf(scenario).map((service) => violationOf(scenario, service, entries))
  return [...found, violationOfFigures(scenario, entries)]
    .filter((violation) => violation !== undefined)
    .sort((a, b) => a.at - b.at)[0]
}

const violationOfFigures = (scenario: Scenario, entries: ReadonlyArray<Entry>): Violation | undefined => {
  const book = new FigureBook(scenario)
  for (const [at, entry] of entries.entries()) {
    for (const { name, check } of entry._tag === "Read" ? figureRules : []) {
      const message = check(entry as Extract<Entry, { readonly _tag: "Read" }>, book)
      if (message !== undefined) return { rule: name, message, at }
    }
    book.apply(entry)
  }
  return undefined
}

const violationOfOrder = (
  scenario: Scenario,
  plan: BindingPlan,
  entries: ReadonlyArray<Entry>
): Violation | undefined => {
  const book = new OrderBook(scenario, plan)
  const view = viewOf(scenario, plan)
  for (const [at, seen] of entries.entries()) {
    const entry = view(seen)
    if (entry === undefined) continue
    for (const { name, check } of orderRules) {
      const message = check(entry, book)
      if (message !== undefined) return { rule: name, message, at }
    }
    book.apply(entry)
  }
  return undefined
}

const violationOfRemakes = (entries: ReadonlyArray<Entry>): Violation | undefined => {
  const incarnations = new Incarnations()
  for (const [at, entry] of entries.entries()) {
    for (const { name, check } of remakeRules) {
      const message = check(entry, incarnations)
      if (message !== undefined) return { rule: name, message, at }
    }
    incarnations.apply(entry)
  }
  return undefined
}

const violationOf = (scenario: Scenario, service: number, entries: ReadonlyArray<Entry>): Violation | undefined => {
  const ledger = new Ledger(scenarioOf(scenario, service))
  const concerns = concerning(scenario, service)
  for (const [at, entry] of entries.entries()) {
    if (!concerns(entry)) continue
    for (const { name, check } of rules) {
      const message = check(entry, ledger)
      if (message !== undefined) return { rule: name, message, at }
    }
    applyEntry(ledger, entry)
  }
  return undefined
}
