import { random } from '../../src/simulate/random.js';
import { entities } from './entities.js';
export function visit(task, { seed, customers = 200 }) {
    const number = random('traffic', seed, task.id).integer(1, customers);
    return { task, visitor: makeVisitor(number, task.split, seed) };
}
/** The same number is the same person, with the same name and the same consent. */
export function makeVisitor(number, split, seed) {
    const r = random('visitor', seed, number);
    return {
        user: `u${1000 + number}`,
        name: r.pick(entities('name', split)),
        consent: r.weighted({ given: 7, unknown: 2, withdrawn: 1 }),
    };
}
/** What the customer thought of it; most never say. They judge by what they saw: nine in ten are right. */
export function vote(episode, seed) {
    const r = random('vote', seed, episode.id);
    if (!r.chance(0.3))
        return null;
    return episode.success === r.chance(0.9) ? 'up' : 'down';
}
