/**
 * How a dead letter strategy reports its events.
 */
import type { StrategyEvent } from "../../EventBusEvent.ts"

export type OnEvent = (event: StrategyEvent) => void
