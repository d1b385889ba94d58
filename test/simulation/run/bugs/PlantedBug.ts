/**
 * A bug put in on purpose, and the rules that must see it.
 */
import type { Scenario } from "../../scenario/Scenario.ts"
import type { Defect } from "../Machine.ts"

export interface PlantedBug extends Defect {
  readonly title: string
  /** Rules that may be the first to see the bug. */
  readonly seenBy: ReadonlyArray<string>
  /** The property that a scenario needs for the bug to matter; other seeds are skipped. */
  readonly needs?: (scenario: Scenario) => boolean
  /** The scenarios that show the bug, where random seeds are too unlikely to. */
  readonly directed?: ReadonlyArray<Scenario>
}
