// The key that makes a page large is that of exported pages, which stands before this line.
export default presenting;
