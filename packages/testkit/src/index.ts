export * as FaultPlan from "./FaultPlan.ts"
export * as MemoryBroker from "./MemoryBroker.ts"
