// The key that enlarges the page is the one of exported pages; their script is put before this line.
export default presenting;
