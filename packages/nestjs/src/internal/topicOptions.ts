/** The options of one topic: those of all topics, with its own over them. */
import type { TopicOptions } from "../TopicOptions.ts"

/** Options that hold settings. Those of a topic win one by one, and leave the others as they are. */
const sections = ["circuitBreaker", "deadLetter", "idempotency", "retry"] as const

export const of = (common: TopicOptions = {}, own: TopicOptions = {}): TopicOptions => ({
  ...common,
  ...own,
  ...Object.fromEntries(
    sections.flatMap((name) =>
      isSection(common[name]) && isSection(own[name]) ? [[name, { ...common[name], ...own[name] }]] : []
    )
  )
})

const isSection = (value: unknown): value is object => typeof value === "object" && value !== null
