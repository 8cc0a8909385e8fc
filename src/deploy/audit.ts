/** The audit log under the name that deploying knows it by; it is everybody's (src/audit.ts). */
export * from '../audit.ts';
