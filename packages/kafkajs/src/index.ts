export * as KafkaJs from "./KafkaJs.ts"
export * as Secret from "./Secret.ts"
