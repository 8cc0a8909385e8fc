/**
 * What customers write, by split: no template is shared, so golden tasks test understanding and not recall. {order},
 * {product} and {town} are filled from the split's entities. Under `bare` the customer leaves the order number out and has
 * to be asked. Only the customer's side is here; how the agent may answer is in replies.ts.
 */
import type { Split, Voices } from 'pawl';

type BySplit<T> = Readonly<Record<Split, T>>;

/** Requests that carry everything needed. */
export const requests: Readonly<Record<string, BySplit<readonly string[]>>> = {
  status: {
    train: [
      'Where is my order {order}?',
      'What is the status of order {order}?',
      'Has order {order} been shipped?',
      'I am waiting for order {order}. Where is it?',
      'Can you check order {order} for me?',
      'When will order {order} arrive?',
      'Any news on order {order}?',
      'Is {order} on its way?',
      'How is order {order} doing?',
      'Please tell me the status of {order}.',
      'My order is {order}. When does it come?',
      'I want to know where {order} is.',
    ],
    validation: ['Can you tell me where order {order} is?', 'What is going on with {order}?', 'Status of {order}?'],
    golden: [
      'Could you tell me when order {order} will come?',
      'I want the status of my order {order}.',
      'Where is {order} now?',
      'Do you know when {order} will arrive?',
    ],
  },
  cancel: {
    train: [
      'Please cancel order {order}.',
      'I want to cancel order {order}.',
      'Cancel {order} for me.',
      'Can you cancel my order {order}?',
      'I do not need order {order} any more. Cancel it.',
      'Stop order {order}, please.',
      'My order {order} must be cancelled.',
      'I ordered by mistake. Please cancel {order}.',
      'Order {order}: cancel it please.',
      'I would like to cancel {order}.',
      'Is it possible to cancel {order}?',
    ],
    validation: [
      'Could you cancel {order} please?',
      'I have to cancel my order {order}.',
      '{order} was a mistake, cancel it.',
    ],
    golden: [
      'I need you to cancel order {order}.',
      'Can order {order} be cancelled?',
      'Cancel my order please, it is {order}.',
      'I do not want {order} any more, please cancel.',
    ],
  },
  refund: {
    train: [
      'I want a refund for order {order}.',
      'Please refund order {order}.',
      'Can I get my money back for {order}?',
      'Order {order} is not for me. I want my money back.',
      'I would like a refund for {order}.',
      'Refund {order} please.',
      'I do not like order {order}. Refund it.',
      'Give me my money back for order {order}.',
      'How do I get a refund for {order}?',
      'My order {order} is no good, refund please.',
      'I return order {order}. Please refund me.',
    ],
    validation: ['Can you refund my order {order}?', 'Money back for {order} please.', 'I need a refund on {order}.'],
    golden: [
      'Could I have a refund for order {order}?',
      'I want my money back, the order is {order}.',
      'Please give me a refund for {order}.',
      'I am not happy with {order}, I want a refund.',
    ],
  },
  address: {
    train: [
      'Please send order {order} to {town}.',
      'Change the address of order {order} to {town}.',
      'I moved to {town}. Please change order {order}.',
      'Can order {order} go to {town}?',
      'My new address is in {town}. The order is {order}.',
      'The address of {order} is wrong, it must be {town}.',
      'Order {order} should go to {town}.',
      'Deliver {order} to {town} please.',
      'I live in {town} now. Change the address of {order}.',
      'New address for {order}: {town}.',
    ],
    validation: [
      'Can you send {order} to {town}?',
      'Please change the address of {order} to {town}.',
      'I am in {town} now, send {order} there.',
    ],
    golden: [
      'I need order {order} sent to {town}.',
      'Could you change the address of {order}? It is {town} now.',
      'Send my order {order} to {town} please.',
      'We moved to {town}, so please change the address of order {order}.',
    ],
  },
  damaged: {
    train: [
      'Order {order} came broken.',
      'My order {order} is damaged.',
      'The {product} in order {order} is broken.',
      'Order {order} arrived damaged. I want a new one.',
      'My {product} from order {order} does not work.',
      'I got a broken {product}, order {order}.',
      'The {product} is damaged. Order {order}.',
      '{order} came in pieces.',
      'What came in order {order} is broken.',
      'I opened order {order} and it is damaged.',
    ],
    validation: [
      'My {product} is broken, it was order {order}.',
      'Order {order} was damaged when it came.',
      'There is damage on order {order}.',
    ],
    golden: [
      'The {product} I got in order {order} is damaged.',
      'I got order {order} and it is broken.',
      'My order {order} came damaged.',
      'Order {order} does not work, it is broken.',
    ],
  },
  complaint: {
    train: [
      'I will call my lawyer about order {order}.',
      'My lawyer will write to you.',
      'I was hurt by your {product}.',
      'I want to talk to a human.',
      'Let me talk to a real person.',
      'Your {product} hurt my hand.',
      'I do not want a machine. Give me a person.',
      'You will hear from my lawyer about {order}.',
      'My child was hurt by the {product} from order {order}.',
      'I want to speak to your boss about order {order}.',
      'Get me a human for order {order}.',
    ],
    validation: ['Can I speak to a person?', 'My lawyer wants to talk to you about {order}.', 'The {product} hurt me.'],
    golden: [
      'I want to speak to a real human about {order}.',
      'I will send my lawyer because of order {order}.',
      'The {product} hurt my child.',
      'Please let me speak to a person.',
    ],
  },
  mind: {
    train: [
      'I want to cancel my order.',
      'Please cancel my order.',
      'I want my money back.',
      'I want a refund.',
      'Please refund my order.',
      'Can you cancel my order?',
      'I would like to cancel.',
    ],
    validation: ['I have to cancel my order.', 'Can you refund my order?'],
    golden: ['I need you to cancel my order.', 'Could I have a refund?', 'Can my order be cancelled?'],
  },
};

/** The same wishes without the number. */
export const bare: Readonly<Record<string, BySplit<readonly string[]>>> = {
  status: {
    train: [
      'Where is my order?',
      'When will my order arrive?',
      'What is the status of my order?',
      'Any news on my order?',
      'Has my order been shipped?',
    ],
    validation: ['Can you tell me where my order is?', 'What is going on with my order?'],
    golden: ['Could you tell me when my order will come?', 'Where is my order now?'],
  },
  cancel: {
    train: [
      'I want to cancel my order.',
      'Please cancel my order.',
      'Can you cancel my order?',
      'I would like to cancel.',
      'I ordered by mistake.',
    ],
    validation: ['I have to cancel my order.', 'Could you cancel my order please?'],
    golden: ['I need you to cancel my order.', 'Can my order be cancelled?'],
  },
  refund: {
    train: [
      'I want a refund.',
      'I want my money back.',
      'Please refund my order.',
      'How do I get a refund?',
      'I would like a refund.',
    ],
    validation: ['Can you refund my order?', 'I need a refund.'],
    golden: ['Could I have a refund?', 'Please give me a refund.'],
  },
  address: {
    train: [
      'Please send my order to {town}.',
      'I moved to {town}.',
      'My new address is in {town}.',
      'Change my address to {town}.',
    ],
    validation: ['Can you send my order to {town}?', 'I am in {town} now.'],
    golden: ['I need my order sent to {town}.', 'We moved to {town}, please change the address.'],
  },
  damaged: {
    train: [
      'My order came broken.',
      'My {product} is damaged.',
      'The {product} is broken.',
      'My {product} does not work.',
    ],
    validation: ['My {product} is broken.', 'My order was damaged when it came.'],
    golden: ['The {product} I got is damaged.', 'My order came damaged.'],
  },
};

export const attributes = ['weight', 'warranty', 'size', 'power'] as const;
export type Attribute = (typeof attributes)[number];

/** Product questions, by what they ask about. */
export const questions: Readonly<Record<Attribute, BySplit<readonly string[]>>> = {
  weight: {
    train: [
      'How heavy is the {product}?',
      'What does the {product} weigh?',
      'What is the weight of the {product}?',
      'Is the {product} heavy?',
    ],
    validation: ['How much does the {product} weigh?', 'I want to know the weight of the {product}.'],
    golden: ['Can you tell me the weight of the {product}?', 'How heavy is your {product}?'],
  },
  warranty: {
    train: [
      'How long is the warranty of the {product}?',
      'What warranty does the {product} have?',
      'Does the {product} have a warranty?',
      'Warranty on the {product}?',
    ],
    validation: ['How many years of warranty has the {product}?', 'I want to know the warranty of the {product}.'],
    golden: ['Can you tell me the warranty of the {product}?', 'What is the warranty on your {product}?'],
  },
  size: {
    train: [
      'How big is the {product}?',
      'What size is the {product}?',
      'How large is the {product}?',
      'What is the size of the {product}?',
    ],
    validation: ['I want to know the size of the {product}.', 'Is the {product} big?'],
    golden: ['Can you tell me the size of the {product}?', 'How big is your {product}?'],
  },
  power: {
    train: [
      'How much power does the {product} use?',
      'What power does the {product} need?',
      'What is the power of the {product}?',
      'Does the {product} use much power?',
    ],
    validation: ['I want to know the power of the {product}.', 'How many watts does the {product} use?'],
    golden: ['Can you tell me the power of the {product}?', 'How much power does your {product} need?'],
  },
};

/** What a customer says when asked for the number. */
export const numbers: BySplit<readonly string[]> = {
  train: ['It is {order}.', '{order}.', 'The number is {order}.', 'My order is {order}.', 'That is {order}.'],
  validation: ['Order {order}.', 'Here it is: {order}.'],
  golden: ['My number is {order}.', 'It is order {order}.'],
};

/** What a customer who changes their mind adds to the number. */
export const instead: BySplit<readonly string[]> = {
  train: [
    'Wait, do not do it. Where is it now?',
    'No, keep it. When will it arrive?',
    'Actually, just tell me the status.',
    'I changed my mind. Where is it?',
    'Stop, I want to keep it. What is the status?',
  ],
  validation: ['No, wait. I only want to know where it is.', 'Sorry, I keep it. Any news on it?'],
  golden: ['Actually I want to keep it. Where is it?', 'I changed my mind, just tell me when it will come.'],
};

/** Greetings, used now and then. {name} is the customer's. */
export const greetings: BySplit<readonly string[]> = {
  train: ['Hi.', 'Hello.', 'Hi, {name} here.', 'Hello, I am {name}.'],
  validation: ['Hey.', 'Hi, this is {name}.'],
  golden: ['Good day.', 'Hello, {name} here.'],
};

/** What some customers add, asked or not. */
export const personal: Readonly<Record<'email' | 'card', BySplit<readonly string[]>>> = {
  email: {
    train: ['My mail is {email}.', 'Write to {email}.', 'You can reach me at {email}.', 'I am {email}.'],
    validation: ['Mail me at {email}.', 'My account is {email}.'],
    golden: ['My e-mail is {email}.', 'Send the answer to {email}.'],
  },
  card: {
    train: ['I paid with card {card}.', 'My card is {card}.', 'It was paid by {card}.', 'The card was {card}.'],
    validation: ['Paid with my card {card}.', 'I used card {card}.'],
    golden: ['My card number is {card}.', 'I paid by card, {card}.'],
  },
};

export const voicesBySplit: BySplit<Voices> = {
  train: {
    cries: ['Help!', 'Oh no!', 'This is bad!', 'Please help me!'],
    pleas: ['Please hurry!', 'Quick!', 'I need it now!'],
    again: ['Again:', 'As I said:', 'I repeat:'],
  },
  validation: { cries: ['Help me!'], pleas: ['Now, please!'], again: ['Once more:'] },
  golden: {
    cries: ['Oh no, help!', 'I need help now!'],
    pleas: ['Please be quick!', 'Hurry!'],
    again: ['I said:', 'Again, please:'],
  },
};
