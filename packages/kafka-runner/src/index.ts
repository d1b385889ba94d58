export * as ClientCertificate from "./ClientCertificate.ts"
export * as JavaClient from "./JavaClient.ts"
export * as RealKafka from "./RealKafka.ts"
export * as RealKafkaError from "./RealKafkaError.ts"
